package urlkey

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// DefaultTrackingParams returns the query parameters that are removed unless
// Options say otherwise. Each is added to links by the service named, to tell
// visits apart and not pages; ambiguous short names (ref, cid, source) are
// not in the list.
func DefaultTrackingParams() []string {
	return []string{
		// Google Analytics campaigns, support.google.com/analytics/answer/10917952
		"utm_*",
		// Google Analytics linker, developers.google.com/analytics/devguides/collection/ga4/cross-domain
		"_ga", "_gl",
		// Google Ads, Campaign Manager, Merchant Center: support.google.com/google-ads/answer/9744275,
		// support.google.com/campaignmanager/answer/9182069, support.google.com/merchants/answer/11127659
		"gclid", "gclsrc", "gbraid", "wbraid", "dclid", "gad_source", "gad_campaignid", "srsltid",
		// Meta, developers.facebook.com/docs/marketing-api/conversions-api/parameters/fbp-and-fbc;
		// Instagram shares
		"fbclid", "igshid", "igsh",
		// Microsoft Advertising, help.ads.microsoft.com "auto-tagging of click ID"
		"msclkid",
		// Yandex Direct and Search, yandex.com/support/metrica: yclid, openstat
		"yclid", "ysclid", "_openstat",
		// X, TikTok, LinkedIn, Pinterest, Snapchat, Reddit click ids, from the vendors' conversion API pages
		"twclid", "ttclid", "li_fat_id", "epik", "sccid", "rdt_cid",
		// Mailchimp, mailchimp.com/developer/marketing/docs/e-commerce
		"mc_cid", "mc_eid",
		// Marketo, experienceleague.adobe.com "mkt_tok"
		"mkt_tok",
		// HubSpot e-mail and ads, knowledge.hubspot.com "tracking parameters"
		"_hsenc", "_hsmi", "__hssc", "__hstc", "__hsfp", "hsctatracking",
		"hsa_acc", "hsa_ad", "hsa_cam", "hsa_grp", "hsa_kw", "hsa_mt", "hsa_net", "hsa_src", "hsa_tgt", "hsa_ver",
		// Matomo and its former name Piwik, matomo.org/faq/reports/faq_120 and faq_119
		"mtm_campaign", "mtm_kwd", "mtm_keyword", "mtm_source", "mtm_medium", "mtm_content", "mtm_cid", "mtm_group", "mtm_placement",
		"pk_campaign", "pk_kwd", "pk_keyword", "pk_source", "pk_medium", "pk_content", "pk_cid",
		"piwik_campaign", "piwik_kwd", "piwik_keyword",
		// Klaviyo, Vero, Omeda, Adobe Campaign style mailings
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
