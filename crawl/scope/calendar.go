package scope

import (
	"bytes"
	"time"
)

// The thresholds of an endless calendar. Pages that carry more than a date in
// their URL (an id, a slug) are families of one and never counted together.
const (
	// maxFamilies bounds the families remembered.
	maxFamilies = 4096
	// horizonYears ahead there is nothing but generated pages; so many dates
	// beyond it, found so deep, prove a generator. A chart of years up to 2100
	// is neither that deep nor that long.
	horizonYears = 2
	futureDeep   = 12
	futureDepth  = 10
	futureMany   = 300
	// provenPast is how far back a proven generator is followed.
	provenPast = 10
	// A calendar of months that link to their days is one after this many
	// months and days, followed so many links from where it began (as many
	// months, most often); a year around today is crawled all the same.
	gridMonths, gridDays, gridDepth = 12, 400, 30
	// firstYear is before what sites keep archives of; chains of months get
	// there when nothing ends them.
	firstYear, firstCount, firstDepth = 1900, 100, 24
)

// date is what the digits of a URL say. Day and month are 0 where absent.
type date struct {
	year, month, day int
	from, to         int  // the digits, in the URL
	padded           bool // written as hardly anything but a date is
}

func (d date) time() time.Time {
	return time.Date(d.year, time.Month(max(d.month, 1)), max(d.day, 1), 0, 0, 0, 0, time.UTC)
}

// dateFamily is what is known of the URLs that differ in their date only.
type dateFamily struct {
	minDepth     int
	years        int
	months, days int
	future       int // beyond the horizon
	futureDeep   int // of these, found deep
	proven       bool
	ambiguous    int // could be something else than dates
	unmistakable int
}

func (t *Traps) checkDate(url []byte, d date, depth int) (reason string, trap bool) {
	key := t.hash(url[:d.from], url[d.to:])
	today := t.now()
	when := d.time()
	beyond := when.After(today.AddDate(horizonYears, 0, 0))

	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.dates[key]
	if f == nil {
		if len(t.dates) >= maxFamilies {
			t.forgetFamilies()
		}
		f = &dateFamily{minDepth: depth}
		t.dates[key] = f
	}
	f.minDepth = min(f.minDepth, depth)
	switch {
	case d.day > 0:
		f.days++
	case d.month > 0:
		f.months++
	default:
		f.years++
	}
	if d.padded {
		f.unmistakable++
	} else {
		f.ambiguous++
	}
	if beyond {
		f.future++
		if depth >= futureDepth {
			f.futureDeep++
		}
	}
	if f.ambiguous > f.unmistakable {
		return "", false
	}
	if f.futureDeep >= futureDeep || f.future >= futureMany {
		f.proven = true
	}
	count := f.years + f.months + f.days
	grid := f.months >= gridMonths && f.days >= gridDays && depth-f.minDepth >= gridDepth
	switch {
	case f.proven && beyond && depth >= 4,
		f.proven && depth >= futureDepth && when.Before(today.AddDate(-provenPast, 0, 0)),
		grid && (when.After(today.AddDate(1, 0, 0)) || when.Before(today.AddDate(-1, 0, 0))),
		d.year < firstYear && count >= firstCount && depth >= firstDepth:
		return "endless calendar", true
	}
	return "", false
}

// forgetFamilies makes room: families that did not grow go first.
func (t *Traps) forgetFamilies() {
	for least := 4; len(t.dates) > maxFamilies/2; least *= 4 {
		for k, f := range t.dates {
			if f.years+f.months+f.days < least {
				delete(t.dates, k)
			}
		}
	}
}

// number is a run of digits that no letter touches.
type number struct{ from, to, value int }

func (n number) digits() int { return n.to - n.from }

// findDate finds the first date in path and query:
//
//	2031/05/17, 2031-05, 2031_5_17   year, month and perhaps day, one separator between
//	17-05-2031, 05/2031              the other way around
//	year=2031&month=5&day=17         parameters, in this order
//	20310517, 203105, 2031           only in a URL that names a calendar
//
// Without a zero in front of the month the numbers may be anything (a thread
// and its page), so that they count as a date only in a URL that names a
// calendar, or among others that have the zero.
func findDate(url []byte, pathAt int) (date, bool) {
	var buf [8]number
	numbers := findNumbers(buf[:0], url, pathAt)
	if len(numbers) == 0 {
		return date{}, false
	}
	named, asked := false, false
	calendar := func() bool {
		if !asked {
			named, asked = namesCalendar(url[pathAt:]), true
		}
		return named
	}
	for i, n := range numbers {
		rest := numbers[i+1:]
		if n.digits() == 4 && n.value >= 1000 {
			d := date{year: n.value, from: n.from, to: n.to}
			if len(rest) > 0 && follows(url, n, rest[0], "month") && 1 <= rest[0].value && rest[0].value <= 12 && rest[0].digits() <= 2 {
				d.month, d.to = rest[0].value, rest[0].to
				d.padded = url[rest[0].from] == '0'
				if len(rest) > 1 && follows(url, rest[0], rest[1], "day") && 1 <= rest[1].value && rest[1].value <= 31 && rest[1].digits() <= 2 {
					d.day, d.to = rest[1].value, rest[1].to
				}
			}
			if d.month > 0 || calendar() {
				d.padded = d.padded || calendar()
				return d, true
			}
		}
		if n.digits() <= 2 && len(rest) > 0 {
			if d, ok := dayFirst(url, n, rest); ok {
				d.padded = d.padded || calendar()
				return d, true
			}
		}
		if (n.digits() == 8 || n.digits() == 6) && calendar() {
			d := date{year: n.value / 100, month: n.value % 100, from: n.from, to: n.to, padded: true}
			if n.digits() == 8 {
				d.year, d.month, d.day = n.value/10000, n.value/100%100, n.value%100
			}
			if 1000 <= d.year && 1 <= d.month && d.month <= 12 && d.day <= 31 && (d.day > 0 || n.digits() == 6) {
				return d, true
			}
		}
	}
	return date{}, false
}

// dayFirst reads 17-05-2031 and 05-2031.
func dayFirst(url []byte, n number, rest []number) (date, bool) {
	year := rest[0]
	d := date{month: n.value, from: n.from, padded: url[n.from] == '0'}
	if len(rest) > 1 && rest[0].digits() <= 2 && follows(url, n, rest[0], "") {
		year = rest[1]
		d.day, d.month = n.value, rest[0].value
		d.padded = d.padded || url[rest[0].from] == '0'
		if d.month > 12 { // month first, as in the United States
			d.day, d.month = d.month, d.day
		}
		if !follows(url, rest[0], year, "") {
			return date{}, false
		}
	} else if !follows(url, n, year, "") {
		return date{}, false
	}
	d.year, d.to = year.value, year.to
	ok := year.digits() == 4 && 1000 <= d.year && 1 <= d.month && d.month <= 12 && d.day <= 31
	return d, ok
}

// follows says that the two numbers are parts of one date: a single separator
// stands between them, or the name of a parameter that starts like word.
func follows(url []byte, a, b number, word string) bool {
	between := url[a.to:b.from]
	if len(between) == 1 {
		return bytes.IndexByte([]byte("/-_.,"), between[0]) >= 0
	}
	if word == "" || len(between) < 3 || between[0] != '&' || between[len(between)-1] != '=' {
		return false
	}
	name := between[1 : len(between)-1]
	// "m", "mon", "month", "cal_month"; "d", "day"
	if i := bytes.LastIndexAny(name, "_-."); i >= 0 {
		name = name[i+1:]
	}
	return len(name) > 0 && len(name) <= len(word) && word[:len(name)] == string(bytes.ToLower(name))
}

func findNumbers(dst []number, url []byte, pathAt int) []number {
	for i := pathAt; i < len(url) && len(dst) < cap(dst); {
		if !isDigit(url[i]) {
			i++
			continue
		}
		from, value := i, 0
		for ; i < len(url) && isDigit(url[i]); i++ {
			if i-from < 9 {
				value = value*10 + int(url[i]-'0')
			}
		}
		// Escapes are no numbers, and neither are the digits of words.
		if isLetter(url[from-1]) || url[from-1] == '%' || i < len(url) && isLetter(url[i]) {
			continue
		}
		dst = append(dst, number{from, i, value})
	}
	return dst
}

// namesCalendar says that a path or query speaks of a calendar, in the
// languages whose words for it are known here.
func namesCalendar(s []byte) bool {
	for _, w := range calendarWords {
		if containsFold(s, w) {
			return true
		}
	}
	return false
}

var calendarWords = []string{"calend", "kalend", "year=", "month", "jahr=", "monat", "date=", "datum=", "agenda"}

// containsFold is bytes.Contains for a lower-case word and a text in any case.
func containsFold(s []byte, word string) bool {
	for i := 0; i+len(word) <= len(s); i++ {
		j := 0
		for j < len(word) && (s[i+j] == word[j] || s[i+j]|0x20 == word[j]) {
			j++
		}
		if j == len(word) {
			return true
		}
	}
	return false
}
