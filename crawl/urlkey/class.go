package urlkey

// What a byte may be, by position in a URL. The table is read only.
const (
	// pathByte stands in a path as it is. `/` and `.` are apart: they may
	// end or make a dot segment.
	pathByte = 1 << iota
	// queryByte stands in a query as it is.
	queryByte
	// unreserved is RFC 3986, 2.3: escaped or not, it means the same.
	unreserved
	// hexDigit is a digit of an escape.
	hexDigit
	// schemeByte may follow the first letter of a scheme.
	schemeByte
	// hostByte stands in a plain host name as it is.
	hostByte
	// cutByte is removed from the input (tab, newline) or ends it (`#`).
	cutByte
	// forbiddenByte ends no host but makes it invalid: the forbidden domain
	// code points of the URL Standard.
	forbiddenByte
)

var class = func() (t [256]byte) {
	set := func(bits byte, s string) {
		for i := range len(s) {
			t[s[i]] |= bits
		}
	}
	const (
		lower = "abcdefghijklmnopqrstuvwxyz"
		upper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
		digit = "0123456789"
	)
	set(pathByte|queryByte|unreserved, lower+upper+digit+"-_~")
	set(queryByte|unreserved, ".")
	// sub-delims and what else RFC 3986, 3.3 and 3.4, allows. The URL
	// Standard escapes `'` in queries only.
	set(pathByte|queryByte, "!$&()*+,;=:@")
	set(pathByte, "'")
	set(queryByte, "/?")
	set(hexDigit, digit+"abcdefABCDEF")
	set(schemeByte, lower+upper+digit+"+-.")
	set(hostByte, lower+digit+"-_.")
	set(cutByte, "\t\n\r#")
	for c := range 0x21 {
		t[c] |= forbiddenByte
	}
	set(forbiddenByte, "#/:<>?@[\\]^|%\x7f")
	return t
}()

const hexUpper = "0123456789ABCDEF"

func is(c, bits byte) bool { return class[c]&bits != 0 }

func isSlash(c byte) bool { return c == '/' || c == '\\' }

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func unhex(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c&^0x20 - 'A' + 10
}
