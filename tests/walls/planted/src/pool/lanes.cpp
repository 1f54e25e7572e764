template <class Device>
auto lane_of(Device& device) {
  return device.create_lane();
}
