package urlkey

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// DefaultTrackingParams returns the query parameters that are removed unless
// Options say otherwise. Each is added to links by the service named, to tell
// visits apart and not pages; the names are those of the vendors' help pages
// on tagging; compare AdGuard's URL Tracking filter
// (github.com/AdguardTeam/AdguardFilters). Ambiguous names (ref, source, cid)
// are not in the list, and neither are session ids: a site that redirects to a
// URL with one could not be crawled.
func DefaultTrackingParams() []string {
	return []string{
		// Google Analytics: campaigns, cross-domain linker
		"utm_*", "_ga", "_gl",
		// Google Ads, Campaign Manager, Merchant Center: auto-tagging
		"gclid", "gclsrc", "gbraid", "wbraid", "dclid", "gad_source", "gad_campaignid", "srsltid",
		// Meta: click id; Instagram: share id
		"fbclid", "igshid", "igsh",
		// Microsoft Advertising: click id
		"msclkid",
		// Yandex Direct and Search: click ids; Openstat marks
		"yclid", "ysclid", "_openstat",
		// click ids of X, TikTok, LinkedIn, Pinterest, Snapchat, Reddit
		"twclid", "ttclid", "li_fat_id", "epik", "sccid", "rdt_cid",
		// Mailchimp: campaign and recipient
		"mc_cid", "mc_eid",
		// Marketo: mailing
		"mkt_tok",
		// HubSpot: mailings, cookies in links, ads
		"_hsenc", "_hsmi", "__hssc", "__hstc", "__hsfp", "hsctatracking",
		"hsa_acc", "hsa_ad", "hsa_cam", "hsa_grp", "hsa_kw", "hsa_mt", "hsa_net", "hsa_src", "hsa_tgt", "hsa_ver",
		// Matomo and its former name Piwik: campaigns
		"mtm_campaign", "mtm_kwd", "mtm_keyword", "mtm_source", "mtm_medium", "mtm_content", "mtm_cid", "mtm_group", "mtm_placement",
		"pk_campaign", "pk_kwd", "pk_keyword", "pk_source", "pk_medium", "pk_content", "pk_cid",
		"piwik_campaign", "piwik_kwd", "piwik_keyword",
		// Klaviyo, Vero, Omeda: mailings
		"_kx", "vero_conv", "vero_id", "oly_anon_id", "oly_enc_id",
	}
}

// maxParam is the longest name of a parameter that can be removed, in bytes.
const maxParam = 64

// tracking is the compiled list of parameters to remove. It is read only.
type tracking struct {
	first    [256]bool // first bytes of all names, in both cases
	names    map[string]struct{}
	prefixes []string
}

func compileTracking(params []string) (*tracking, error) {
	t := &tracking{names: make(map[string]struct{}, len(params))}
	for _, p := range params {
		name, prefix := strings.CutSuffix(p, "*")
		if name == "" || len(name) > maxParam || plainQuery([]byte(name)) != len(name) || strings.ContainsAny(name, "*=&?/") {
			return nil, fmt.Errorf("tracking parameter %q: want a name like gclid or a prefix like utm_*, "+
				"at most %d letters, digits and punctuation other than * = & ? / %%", p, maxParam)
		}
		name = strings.ToLower(name)
		if prefix {
			t.prefixes = append(t.prefixes, name)
		} else {
			t.names[name] = struct{}{}
		}
		t.first[name[0]] = true
		t.first[strings.ToUpper(name)[0]] = true
	}
	slices.Sort(t.prefixes)
	t.prefixes = slices.Compact(t.prefixes)
	return t, nil
}

func (t *tracking) match(name []byte) bool {
	if len(name) == 0 || !t.first[name[0]] {
		return false
	}
	var lower [maxParam]byte
	n := min(len(name), maxParam)
	for i, c := range name[:n] {
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		lower[i] = c
	}
	if len(name) == n {
		if _, ok := t.names[string(lower[:n])]; ok {
			return true
		}
	}
	for _, p := range t.prefixes {
		if n >= len(p) && string(lower[:len(p)]) == p {
			return true
		}
	}
	return false
}

// strip removes the tracking parameters of the query that starts, with its
// question mark, at out[at], and the question mark when nothing is left.
func (t *tracking) strip(out []byte, at int) []byte {
	if t == nil {
		if len(out) == at+1 {
			return out[:at]
		}
		return out
	}
	write, first := at+1, true
	for read := at + 1; read <= len(out); {
		param := out[read:]
		if i := bytes.IndexByte(param, '&'); i >= 0 {
			param = param[:i]
		}
		next := read + len(param) + 1
		name := param
		if i := bytes.IndexByte(param, '='); i >= 0 {
			name = param[:i]
		}
		if !t.match(name) {
			if !first {
				out[write] = '&'
				write++
			}
			if write != read {
				copy(out[write:], param)
			}
			write += len(param)
			first = false
		}
		read = next
	}
	if write == at+1 {
		return out[:at]
	}
	return out[:write]
}
