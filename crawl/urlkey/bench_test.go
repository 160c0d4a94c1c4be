package urlkey_test

import (
	"testing"

	"deepcrawl/crawl/urlkey"
)

func BenchmarkResolve(b *testing.B) {
	c := newCanonicalizer(b, urlkey.Options{})
	base, err := c.NewBase("https://www.example.com/shop/shoes/index.html")
	if err != nil {
		b.Fatal(err)
	}
	buf := make([]byte, 0, 4096)
	for _, bc := range []struct{ name, href string }{
		{"root", "/shop/shoes/red-42.html"},
		{"root with query", "/shop/shoes?page=2&sort=price"},
		{"own origin", "https://www.example.com/shop/shoes/red-42.html"},
		{"other origin", "https://blog.example.com/2019/05/shoes/"},
		{"relative", "../boots/red-42.html"},
		{"tracked", "/shop/shoes?utm_source=mail&page=2"},
		{"escaped", "/caf%c3%a9/cr%C3%A8me%20br%C3%BBl%C3%A9e.html"},
		{"unicode", "/café/crème brûlée.html"},
		{"unicode host", "https://bücher.example/x"},
		{"mailto", "mailto:someone@example.com"},
	} {
		href := []byte(bc.href)
		b.Run(bc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, buf, _ = base.Resolve(buf[:0], href)
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	c := newCanonicalizer(b, urlkey.Options{})
	b.ReportAllocs()
	for b.Loop() {
		_, _ = c.Parse("https://www.example.com/shop/shoes/red-42.html")
	}
}

func BenchmarkKeyOf(b *testing.B) {
	raw := []byte("https://www.example.com/shop/shoes/red-42.html")
	for b.Loop() {
		urlkey.KeyOf(raw)
	}
}
