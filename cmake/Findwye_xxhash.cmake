# Finds the header of xxHash, which brings a CMake package only in some distributions, and makes wye_deps::xxhash. Nothing is
# linked: all of it is in the header.
find_path(wye_xxhash_INCLUDE_DIR NAMES xxhash.h)
mark_as_advanced(wye_xxhash_INCLUDE_DIR)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(wye_xxhash REQUIRED_VARS wye_xxhash_INCLUDE_DIR)

if(wye_xxhash_FOUND AND NOT TARGET wye_deps::xxhash)
  add_library(wye_deps::xxhash INTERFACE IMPORTED)
  set_target_properties(wye_deps::xxhash PROPERTIES INTERFACE_INCLUDE_DIRECTORIES ${wye_xxhash_INCLUDE_DIR})
endif()
