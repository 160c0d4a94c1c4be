package extract

import (
	"bytes"
	"strings"
	"time"
)

// Robots directives, as developers.google.com/search/docs/crawling-indexing/robots-meta-tag describes them: lists separated by
// commas, in meta name=robots or meta name=BOT, and in X-Robots-Tag headers, where "bot:" in front makes a rule for that bot.

// namedBots are crawlers whose own meta tags are worth a note, beside our product.
var namedBots = []string{"googlebot", "googlebot-news", "googlebot-image", "googlebot-video", "google-extended", "adsbot-google",
	"storebot-google", "bingbot", "msnbot", "yandex", "yandexbot", "baiduspider", "slurp", "duckduckbot", "applebot", "otherbot"}

// valuedDirectives are those with a value after a colon, so that their colon does not name a bot.
var valuedDirectives = []string{"max-snippet", "max-image-preview", "max-video-preview", "unavailable_after"}

// robotsMeta takes one meta element whose name may be robots, our product or another bot's.
func (s *scan) robotsMeta(name, content []byte) {
	if equalFold(name, "robots") || s.product != "" && equalFold(name, s.product) {
		s.robotsRules(content, false)
		if !s.inHead {
			s.f.Notes |= NoteLateHead
		}
	}
	for _, bot := range namedBots {
		if equalFold(name, bot) {
			s.botRules(bot, content)
			return
		}
	}
}

// robotsHeader takes the value of one X-Robots-Tag line.
func (s *scan) robotsHeader(value []byte) {
	bot := ""
	start := 0
	flush := func(end int) {
		rules := trimSpace(bytes.Trim(value[start:end], ", \t"))
		if len(rules) == 0 {
			return
		}
		if bot != "" && bot != s.product && bot != "robots" && bot != "*" {
			s.botRules(bot, rules)
		}
		if bot == "" || bot == "robots" || bot == "*" || bot == s.product {
			s.robotsRules(rules, true)
		}
	}
	for i := 0; i <= len(value); {
		end := bytes.IndexByte(value[i:], ',')
		if end < 0 {
			end = len(value)
		} else {
			end += i
		}
		piece := value[i:end]
		if colon := bytes.IndexByte(piece, ':'); colon >= 0 {
			if name := trimSpace(piece[:colon]); isBotName(name) {
				flush(i)
				bot = strings.ToLower(string(name))
				start = i + colon + 1
			} else if rest, _ := cutDate(value[i:]); len(rest) > end-i {
				end = i + len(rest)
			}
		}
		i = end + 1
	}
	flush(len(value))
}

func isBotName(name []byte) bool {
	if len(name) == 0 || len(name) > 64 {
		return false
	}
	for _, c := range name {
		if !isAlnum(c) && c != '-' && c != '_' && c != '*' && c != '.' && c != '/' {
			return false
		}
	}
	for _, d := range valuedDirectives {
		if equalFold(name, d) {
			return false
		}
	}
	return true
}

const unavailableAfter = "unavailable_after"

// cutDate cuts the first directive of a list, minding that the date of unavailable_after may hold a comma after its weekday.
func cutDate(list []byte) (directive, rest []byte) {
	end := bytes.IndexByte(list, ',')
	if end < 0 {
		return list, nil
	}
	first := trimSpace(list[:end])
	if hasPrefixFold(first, unavailableAfter) {
		day := trimSpace(bytes.TrimLeft(first[len(unavailableAfter):], ": \t"))
		weekday := len(day) >= 3
		for _, c := range day {
			weekday = weekday && isAlpha(c)
		}
		if weekday {
			n := bytes.IndexByte(list[end+1:], ',')
			if n < 0 {
				return list, nil
			}
			end += 1 + n
		}
	}
	return list[:end], list[end+1:]
}

// robotsRules applies a list of directives to us.
func (s *scan) robotsRules(list []byte, header bool) {
	f := s.f
	for list != nil {
		var d []byte
		d, list = cutDate(list)
		d = trimSpace(d)
		if len(d) == 0 {
			continue
		}
		switch {
		case equalFold(d, "noindex"):
			f.NoIndex = true
		case equalFold(d, "nofollow"):
			f.NoFollow = true
		case equalFold(d, "none"):
			f.NoIndex, f.NoFollow = true, true
		case equalFold(d, "noarchive"):
			f.NoArchive = true
		case equalFold(d, "nosnippet"):
			f.NoSnippet = true
		case equalFold(d, "noimageindex"):
			f.NoImageIndex = true
		case hasPrefixFold(d, unavailableAfter):
			when := parseDate(string(trimSpace(bytes.TrimLeft(d[len(unavailableAfter):], ": \t"))))
			if when != 0 && (f.UnavailableAfter == 0 || when < f.UnavailableAfter) {
				f.UnavailableAfter = when
			}
		}
		s.robots = appendDirective(s.robots, d)
		if header {
			s.robotsHead = appendDirective(s.robotsHead, d)
		}
	}
}

// appendDirective adds a directive in lower case to a ", " list, once, within bounds.
func appendDirective(list, d []byte) []byte {
	if len(list)+len(d)+2 > MaxDescription {
		return list
	}
	start := len(list)
	if start > 0 {
		list = append(list, ", "...)
	}
	at := len(list)
	list = appendCollapsed(list, d)
	for i := at; i < len(list); i++ {
		list[i] = lowerTable[list[i]]
	}
	added := list[at:]
	for rest := list[:start]; len(rest) > 0; {
		one, next, _ := bytes.Cut(rest, []byte(", "))
		if bytes.Equal(one, added) {
			return list[:start]
		}
		rest = next
	}
	return list
}

func (s *scan) botRules(bot string, list []byte) {
	if len(s.bots) >= MaxBots {
		s.f.Notes |= NoteFactsCut
		return
	}
	var out []byte
	for list != nil {
		var d []byte
		d, list = cutDate(list)
		if d = trimSpace(d); len(d) > 0 {
			out = appendDirective(out, d)
		}
	}
	s.bots = append(s.bots, BotRobots{bot, string(out)})
}

// dateLayouts are the forms Google names for unavailable_after: RFC 822, RFC 850 and ISO 8601.
var dateLayouts = []string{
	time.RFC1123, time.RFC1123Z, "Mon, _2 Jan 2006 15:04:05 MST", time.RFC850, "Monday, 02-Jan-2006 15:04:05 MST",
	time.RFC822, time.RFC822Z, "02 Jan 2006 15:04:05 MST", "02 Jan 2006 15:04:05 -0700", "2 Jan 2006 15:04:05 MST",
	"02-Jan-2006 15:04:05 MST", "02-Jan-06 15:04:05 MST", "02-Jan-2006",
	time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02T15:04Z07:00", "2006-01-02T15:04", "2006-01-02", "20060102",
}

// zones are the abbreviations of RFC 822, which time.Parse reads as names without an offset.
var zones = map[string]string{"EST": "-0500", "EDT": "-0400", "CST": "-0600", "CDT": "-0500", "MST": "-0700", "MDT": "-0600",
	"PST": "-0800", "PDT": "-0700", "UT": "+0000", "UTC": "+0000", "GMT": "+0000", "Z": "+0000", "CET": "+0100", "CEST": "+0200", "BST": "+0100"}

// parseDate reads a date as unix seconds, 0 when it is none.
func parseDate(text string) int64 {
	if len(text) > 64 {
		return 0
	}
	offset := ""
	if i := strings.LastIndexByte(text, ' '); i > 0 {
		offset = zones[strings.ToUpper(text[i+1:])]
	}
	for _, layout := range dateLayouts {
		if t, err := time.Parse(layout, text); err == nil {
			if offset != "" && strings.HasSuffix(layout, "MST") {
				if fixed, err := time.Parse(strings.TrimSuffix(layout, "MST")+"-0700", text[:strings.LastIndexByte(text, ' ')+1]+offset); err == nil {
					t = fixed
				}
			}
			return t.Unix()
		}
	}
	return 0
}
