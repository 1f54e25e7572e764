#pragma once
/// The descriptors of this process.
#include <dirent.h>

namespace wye::test {

/// Returns the number of open descriptors, without that of the count itself.
inline int open_descriptors() {
  DIR* const folder = ::opendir("/proc/self/fd");
  int count = -1;
  while (const dirent* const entry = ::readdir(folder)) count += entry->d_name[0] != '.' ? 1 : 0;
  ::closedir(folder);
  return count;
}

}  // namespace wye::test
