#include "device/lane_base.hpp"

namespace wye::inline v0::device {

ReplayBase::~ReplayBase() = default;
LaneBase::~LaneBase() = default;

}  // namespace wye::device
