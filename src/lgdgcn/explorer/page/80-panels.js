// The tabs at the side. A panel is built when it is first opened.

const BUILDERS = new Map([
  ["factors", buildFactors],
  ["training", buildCurves],
  ["correlation", buildCorrelation],
  ["confusion", buildConfusion],
  ["measures", buildMeasures],
]);

function buildTabs() {
  for (const [name, title] of PANELS) {
    byId("tabs").append(element("button", {
      type: "button",
      role: "tab",
      id: `tab-${name}`,
      "aria-controls": `panel-${name}`,
      onclick: () => change({ panel: name }),
    }, title));
    byId("panels").append(element("div", {
      className: "panel",
      role: "tabpanel",
      id: `panel-${name}`,
      "aria-labelledby": `tab-${name}`,
      tabIndex: 0,
    }));
  }
  byId("tabs").addEventListener("keydown", (event) => {
    const step = new Map([["ArrowRight", 1], ["ArrowLeft", -1]]).get(event.key);
    if (!step) return;
    const names = [...PANELS.keys()];
    const next = names[(names.indexOf(state.panel) + step + names.length) % names.length];
    change({ panel: next });
    byId(`tab-${next}`).focus();
    event.preventDefault();
  });
}

function showPanel() {
  for (const name of PANELS.keys()) {
    const open = name === state.panel;
    byId(`tab-${name}`).setAttribute("aria-selected", String(open));
    byId(`tab-${name}`).tabIndex = open ? 0 : -1;
    byId(`panel-${name}`).hidden = !open;
  }
  BUILDERS.get(state.panel)?.(byId(`panel-${state.panel}`));
  BUILDERS.delete(state.panel);
}

onChange(["panel"], showPanel);
