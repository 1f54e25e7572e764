#pragma once
/// The test framework, Catch2 2 or 3. Assertions may be used by one thread at a time.
#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_approx.hpp>
#include <catch2/catch_template_test_macros.hpp>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif
