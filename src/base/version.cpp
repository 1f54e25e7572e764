#include "base/version.hpp"

#include "base/text.hpp"

namespace wye::inline v0 {

Version library_version() noexcept { return header_version; }

std::string to_string(Version version) {
  return base::text("{}.{}.{}", version.major, version.minor, version.patch);
}

namespace base {

Result<void> check_header(Version header) {
  const Version library = library_version();
  if (header.major == library.major && header.minor == library.minor) return {};
  return Error(Errc::unsupported,
               text("This program was compiled with the headers of wye {}, but the loaded library is wye {}; "
                    "major and minor version must be equal.",
                    to_string(header), to_string(library)));
}

}  // namespace base
}  // namespace wye
