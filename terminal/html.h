#pragma once

#include <string>

namespace nam {

/// Text as HTML and SVG show it, also in attributes.
std::string EscapedHtml(const std::string& text);

}  // namespace nam
