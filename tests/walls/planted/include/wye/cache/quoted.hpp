#pragma once
#include "cache/private.hpp"
