# Finds libsodium, which brings no CMake package of its own, and makes wye_deps::sodium. The shared library is preferred:
# Debian's archive is not position independent, and a plug-in cannot link it.
find_path(wye_sodium_INCLUDE_DIR NAMES sodium.h)
find_library(wye_sodium_LIBRARY NAMES sodium libsodium)
mark_as_advanced(wye_sodium_INCLUDE_DIR wye_sodium_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(wye_sodium REQUIRED_VARS wye_sodium_LIBRARY wye_sodium_INCLUDE_DIR)

if(wye_sodium_FOUND AND NOT TARGET wye_deps::sodium)
  add_library(wye_deps::sodium UNKNOWN IMPORTED)
  set_target_properties(wye_deps::sodium PROPERTIES
    IMPORTED_LOCATION ${wye_sodium_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${wye_sodium_INCLUDE_DIR}
    INTERFACE_LINK_OPTIONS LINKER:--exclude-libs,libsodium.a)  # a library that links the archive does not export it
endif()
