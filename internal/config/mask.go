package config

import "regexp"

// Masked stands where a password stood.
const Masked = "***"

var (
	userinfo = regexp.MustCompile(`(://[^:@/?#\s]*:)[^\s]*@`) // greedy: a raw @ or / in the password is masked with it
	queryPwd = regexp.MustCompile(`(?i)([?&][a-z_]*pass(?:word|wd)?=)[^&\s]*`)
)

// Mask hides the passwords of URLs in a text: a DSN, or an error that repeats one.
func Mask(text string) string {
	return queryPwd.ReplaceAllString(userinfo.ReplaceAllString(text, "${1}"+Masked+"@"), "${1}"+Masked)
}
