#pragma once
#include <wye/base/result.hpp>

#include <string>
#include <string_view>

#include "json.hpp"
#include "wordpiece.hpp"

namespace wye::inline v0::models {

/// Reads the contents of a `tokenizer.json`. `file` is named in errors.
/// Errors: corrupt, unsupported.
Result<WordPieceParts> parse_tokenizer(const Json& root, const std::string& file);

/// Reads the contents of a `vocab.txt`: a piece a line, in the order of the tokens. `config` is
/// that of `tokenizer_config.json`; an empty object stands for the defaults of BERT.
/// Errors: corrupt, unsupported.
Result<WordPieceParts> parse_vocabulary(std::string_view text, const std::string& file, const Json& config,
                                        const std::string& config_file);

/// Reads the files of a tokenizer in a folder.
/// Errors: not_found, io, corrupt, unsupported.
Result<WordPieceParts> read_tokenizer(const std::string& folder);

}  // namespace wye::models
