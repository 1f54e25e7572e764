#pragma once
/// Calls of functions of the application.
#include <wye/base/result.hpp>

#include <exception>
#include <new>
#include <string>

#include "text.hpp"

namespace wye::inline v0::records {

/// Returns the result of `call()`. Exceptions are errors: "<name> threw an exception: ...".
template <class Call>
auto called(const std::string& name, Call call) -> decltype(call()) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return Error(Errc::out_of_memory, text(name, " threw std::bad_alloc."));
  } catch (const Exception& thrown) {
    return thrown.error();
  } catch (const std::exception& thrown) {
    return Error(Errc::kernel_failed, text(name, " threw an exception: ", thrown.what()));
  } catch (...) {
    return Error(Errc::kernel_failed, text(name, " threw an exception."));
  }
}

}  // namespace wye::records
