#include <wye/base/blob_store.hpp>

namespace wye::inline v0 {

BlobStore::~BlobStore() = default;

}  // namespace wye
