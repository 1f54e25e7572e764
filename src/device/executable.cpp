#include "device/executable.hpp"

#include <utility>

#include "device/device.hpp"

namespace wye {
inline namespace v0 {
namespace device {

ExecutableBase::~ExecutableBase() = default;

ExecutableBase::ExecutableBase(std::shared_ptr<DeviceBase> device, Artefact artefact)
    : device_(std::move(device)), artefact_(std::move(artefact)) {
  artefact_.code = {};
}

}  // namespace device
}  // namespace v0
}  // namespace wye
