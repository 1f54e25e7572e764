#include "device/lane_base.hpp"

namespace wye {
inline namespace v0 {
namespace device {

ReplayBase::~ReplayBase() = default;
LaneBase::~LaneBase() = default;

}  // namespace device
}  // namespace v0
}  // namespace wye
