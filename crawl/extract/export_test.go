package extract

// VisibleText is the normalised text that ContentHash and Words are made of.
func (p *Page) VisibleText() []byte { return p.scan.text.out }
