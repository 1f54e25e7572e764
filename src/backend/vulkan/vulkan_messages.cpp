#include "backend/vulkan/vulkan_messages.hpp"

namespace wye::inline v0::vulkan {
namespace {

thread_local MessageHold* current = nullptr;

}  // namespace

void Messages::log(LogLevel level, std::string text) noexcept try {
  if (current && current->messages_ == this)
    current->kept_.emplace_back(level, std::move(text));
  else if (sink_)
    sink_(LogRecord{level, "vulkan", text});
} catch (...) {  // exceptions must not unwind the driver
}

MessageHold::MessageHold(Messages* messages) : messages_(current ? nullptr : messages) {
  if (messages_) current = this;
}

MessageHold::~MessageHold() {
  if (!messages_) return;
  current = nullptr;
  for (auto& [level, text] : kept_) messages_->log(level, std::move(text));
}

}  // namespace wye::vulkan
