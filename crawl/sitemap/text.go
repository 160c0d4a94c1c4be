package sitemap

import (
	"bytes"
	"fmt"
)

// textPatience is how many lines without a URL in front make a body no sitemap.
const textPatience = 20

// text reads a list of one URL a line. What follows a tab on a line is dropped.
func (d *decoder) text() error {
	line := make([]byte, 0, 256)
	lines, first := 0, ""
	finish := func() bool {
		b := bytes.Trim(line, " \t\r\n\v\f\x00\ufeff")
		line = line[:0]
		if i := bytes.IndexByte(b, '\t'); i >= 0 {
			b = bytes.TrimRight(b[:i], " ")
		}
		if len(b) == 0 {
			return true
		}
		if lines++; lines == 1 {
			first = clip(string(b))
		}
		if !hasHTTPScheme(b) {
			d.info.Skipped++
			return d.info.Entries > 0 || lines < textPatience
		}
		d.info.Kind = Text
		return d.deliver(Entry{Loc: urlString(b)})
	}
	for {
		b := d.s.buf[d.s.pos:d.s.end]
		i := bytes.IndexAny(b, "\r\n")
		take := b
		if i >= 0 {
			take = b[:i+1]
		}
		if room := d.limits.MaxURLLen + 256 - len(line); room > 0 {
			line = append(line, take[:min(len(take), room)]...)
		}
		d.s.pos += len(take)
		if i >= 0 {
			if !finish() {
				break
			}
			continue
		}
		if !d.s.fill() {
			if !d.cut() {
				finish()
			}
			break
		}
	}
	if d.info.Entries == 0 && d.stopped == nil && !d.full && !d.cut() {
		return fmt.Errorf("%w: no URL in it, it begins %q", ErrNotSitemap, first)
	}
	return nil
}
