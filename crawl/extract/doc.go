// Package extract reads one HTML page into links and facts in a single pass, without a tree.
//
// A byte tokenizer (the states of the HTML standard, section 13.2.5) walks the decoded body; a thin layer above it keeps only
// what the tree builder would have to know for our answers: head or body, template and noscript, foreign content (SVG and
// MathML), framesets. Everything found aliases the body or a pooled arena, so a page costs a handful of allocations.
//
// What counts as what:
//
//   - URLs stay raw: references decoded, C0 controls and spaces trimmed at both ends (as the URL standard does), nothing resolved.
//     Facts.Base is the href of the first base element and applies to every link of the document, also to those before it, but not
//     to links from HTTP headers (RFC 8288, section 3.1), which say so in Link.FromHeader.
//   - Comments, scripts, styles and the contents of template are not links, except a template that declares a shadow root
//     (shadowrootmode), whose contents a browser shows.
//   - noscript is read as if scripting were off, for links only: its titles, directives, images and words are those of a page
//     that neither people nor search engines see, and would only make invented findings.
//   - Visible text is the text of the body without script, style, template, noscript, textarea, iframe fallback and SVG (but with
//     foreignObject and MathML). White space collapses; the ends of blocks and line breaks separate words, inline tags do not.
//   - A word is a run of non-space characters with at least one letter or digit. Han, Hiragana and Katakana are written
//     without spaces: there each character counts as a word. Hangul, Thai, Lao and Khmer count by spaces (U+200B included).
//
// What is not guaranteed: the order of nodes a tree builder would give for misnested tables, and elements it would duplicate
// (an unclosed a reopened in each following block is one link here).
package extract
