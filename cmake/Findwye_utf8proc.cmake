# Finds utf8proc, which brings a CMake package only in some distributions, and makes wye_deps::utf8proc.
find_path(wye_utf8proc_INCLUDE_DIR NAMES utf8proc.h)
find_library(wye_utf8proc_LIBRARY NAMES utf8proc)
mark_as_advanced(wye_utf8proc_INCLUDE_DIR wye_utf8proc_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(wye_utf8proc REQUIRED_VARS wye_utf8proc_LIBRARY wye_utf8proc_INCLUDE_DIR)

if(wye_utf8proc_FOUND AND NOT TARGET wye_deps::utf8proc)
  add_library(wye_deps::utf8proc UNKNOWN IMPORTED)
  set_target_properties(wye_deps::utf8proc PROPERTIES
    IMPORTED_LOCATION ${wye_utf8proc_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${wye_utf8proc_INCLUDE_DIR})
endif()
