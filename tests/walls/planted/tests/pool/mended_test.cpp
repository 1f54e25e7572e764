// Fewer than its entry.
void mended() { std::this_thread::sleep_for(20ms); }
