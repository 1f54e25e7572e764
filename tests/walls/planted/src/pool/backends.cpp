// A backend named outside of its folder, beside strings that only contain such a name.
const char* named = "vulkan";
const char* innocent = "vulkan:0 is a device";
