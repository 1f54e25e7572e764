void open() {
