set(backend_enabled ${WYE_VULKAN})
set(backend_libraries "")
if(WYE_VULKAN)
  # Headers only: programs that link an installed wye do not need them.
  set(backend_libraries $<BUILD_INTERFACE:wye_deps::vulkan_headers> $<BUILD_INTERFACE:SPIRV-Headers::SPIRV-Headers>)
endif()
