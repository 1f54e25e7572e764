set(backend_enabled ${WYE_VULKAN})
set(backend_libraries "")
if(WYE_VULKAN)
  # Headers only: whoever links an installed wye does without them.
  set(backend_libraries $<BUILD_INTERFACE:wye_deps::vulkan_headers>)
endif()
