#pragma once
#include <wye/wye.hpp>
