#pragma once
/// The includes that a block of docs/writing-a-backend.md may use.
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "device/backend.hpp"
