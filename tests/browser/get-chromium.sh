#!/bin/sh
# Debian's Chromium for the tests of the explorer page, where root may install it. Never fails:
# without a browser these tests are skipped.
for name in chromium chromium-browser google-chrome google-chrome-stable; do
  command -v "$name" >/dev/null 2>&1 && exit 0
done
apt() {
  timeout "$1" apt-get -qq -y --no-install-recommends "$2" $3 >/dev/null 2>&1 </dev/null
}
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
  echo "installing Chromium for the tests of the page"
  export DEBIAN_FRONTEND=noninteractive
  apt 90 update
  # fetched first: what is cut short there leaves no half-installed package
  apt 300 install "--download-only chromium" && apt 300 install chromium && exit 0
fi
echo "no Chromium: the tests of the page are skipped"
exit 0
