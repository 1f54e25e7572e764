int children() { return fork(); }
