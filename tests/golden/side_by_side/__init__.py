"""Two trees of this project, run on the same machine in one sitting, and what differs."""
