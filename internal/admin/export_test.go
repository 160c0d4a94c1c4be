package admin

// Route is a route for tests that walk all of them.
type Route struct {
	Method, Path string
	API          bool
	Access       string
}

// Routes lists all routes.
func (s *Server) Routes() []Route {
	var out []Route
	for _, r := range s.table() {
		out = append(out, Route{r.method, r.path, r.api, [...]string{"anyone", "anyone", "viewer", "member", "operator"}[r.who]})
	}
	return out
}

// PasswordIs is passwordIs.
func PasswordIs(hash, password string) bool { return passwordIs(hash, password) }

// English is the catalogue.
func English() map[string]string { return english }

// LocalPath is localPath.
func LocalPath(p string) string { return localPath(p) }
