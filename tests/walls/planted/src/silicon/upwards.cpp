#include <wye/base/result.hpp>
#include <wye/device/adapter.hpp>

#include "base/gate.hpp"
#include "device/device.hpp"
#include "silicon/slots.hpp"
