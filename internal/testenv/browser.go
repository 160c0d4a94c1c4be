package testenv

import (
	"errors"
	"os"
	"os/exec"
	"testing"
)

// Browser returns the program of a Chromium: that of [VarChromium], else chromium or chromium-browser of the PATH; or it skips.
func Browser(t testing.TB) string {
	t.Helper()
	name, err := findBrowser(os.Getenv(VarChromium))
	if err != nil {
		skip(t, kindBrowser, VarChromium, err)
	}
	return name
}

func findBrowser(named string) (string, error) {
	if named != "" {
		return exec.LookPath(named)
	}
	for _, name := range []string{"chromium", "chromium-browser"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("neither chromium nor chromium-browser is installed")
}
