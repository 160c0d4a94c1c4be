package extract

import "bytes"

// eachSrcset calls add with the URL of each image candidate, by the HTML standard's "parse a srcset attribute" (section
// 4.8.4.2.1): a comma ends a URL only at its end, so those inside data: URLs stay; candidates with faulty descriptors are dropped.
func eachSrcset(b []byte, add func(url []byte)) {
	for i := 0; ; {
		for i < len(b) && (isSpace(b[i]) || b[i] == ',') {
			i++
		}
		if i >= len(b) {
			return
		}
		start := i
		for i < len(b) && !isSpace(b[i]) {
			i++
		}
		url := b[start:i]
		if url[len(url)-1] == ',' {
			add(bytes.TrimRight(url, ","))
			continue
		}
		var ok bool
		i, ok = srcsetDescriptors(b, i)
		if ok {
			add(url)
		}
	}
}

// srcsetDescriptors reads the descriptors of one candidate, up to past its comma, and reports whether they are valid together.
func srcsetDescriptors(b []byte, i int) (next int, ok bool) {
	ok = true
	var width, density, height bool
	descriptor := func(d []byte) {
		if len(d) == 0 {
			return
		}
		number, unit := d[:len(d)-1], d[len(d)-1]
		switch {
		case unit == 'w' && isPositiveInteger(number):
			ok = ok && !width && !density
			width = true
		case unit == 'x' && isNonNegativeFloat(number):
			ok = ok && !width && !density && !height
			density = true
		case unit == 'h' && isPositiveInteger(number):
			ok = ok && !height && !density
			height = true
		default:
			ok = false
		}
	}
	i = skipSpace(b, i)
	start := i
	parens := false
	for ; i < len(b); i++ {
		switch c := b[i]; {
		case parens:
			parens = c != ')'
		case c == '(':
			parens = true
		case c == ',':
			descriptor(b[start:i])
			return i + 1, ok && (!height || width)
		case isSpace(c):
			descriptor(b[start:i])
			start = i + 1
		}
	}
	descriptor(b[start:])
	return len(b), ok && (!height || width)
}

// isPositiveInteger reports a valid non-negative integer above zero.
func isPositiveInteger(b []byte) bool {
	positive := false
	for _, c := range b {
		if c < '0' || c > '9' {
			return false
		}
		positive = positive || c != '0'
	}
	return positive
}

// isNonNegativeFloat reports a valid floating-point number (HTML standard section 2.3.4.3) that is not below zero.
func isNonNegativeFloat(b []byte) bool {
	negative := len(b) > 0 && b[0] == '-'
	if negative {
		b = b[1:]
	}
	digits := func() (n int, zero bool) {
		zero = true
		for n < len(b) && '0' <= b[n] && b[n] <= '9' {
			zero = zero && b[n] == '0'
			n++
		}
		b = b[n:]
		return n, zero
	}
	whole, zero := digits()
	if len(b) > 0 && b[0] == '.' {
		b = b[1:]
		n, z := digits()
		if n == 0 {
			return false
		}
		whole += n
		zero = zero && z
	}
	if whole == 0 || negative && !zero {
		return false
	}
	if len(b) > 0 && (b[0] == 'e' || b[0] == 'E') {
		b = b[1:]
		if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
			b = b[1:]
		}
		if n, _ := digits(); n == 0 {
			return false
		}
	}
	return len(b) == 0
}
