// More than its entries.
void late() {
  std::this_thread::sleep_for(20ms);
  const auto until = Clock::steady().now() + 5ms;
  pool.lease({.deadline = 10ms});
  ticket.wait(Deadline(60s));  // long enough
  ticket.wait(0ms);            // no time passes
  CHECK(base::Worker::alive() == 0);
}
