package browsertest

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"deepcrawl/internal/testenv"
)

// within is how long a test waits for anything; only a machine far too slow, or a defect, takes that long.
const within = 60 * time.Second

// work is the folder of this test process, removed at its end.
var work string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(func() int {
		// The longest test mostly waits for nodes to be found dead; the others have the machine meanwhile.
		err := flag.Set("test.parallel", "4")
		if err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
			return 1
		}
		if work, err = os.MkdirTemp("", "deepcrawl-browser-"); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer func() { _ = os.RemoveAll(work) }()
		defer func() { closeChromium() }()
		return m.Run()
	}())
}

// binary is the program, built once.
var binary = sync.OnceValues(func() (string, error) {
	file := filepath.Join(work, "deepcrawl")
	if out, err := exec.Command("go", "build", "-o", file, "deepcrawl/cmd/deepcrawl").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the program: %w\n%s", err, out)
	}
	return file, nil
})

var (
	chromiumMu    sync.Mutex
	chromiumCtx   context.Context
	closeChromium = func() {}
)

// chromium is the browser of all tests; each tab has cookies of its own.
func chromium(t *testing.T) context.Context {
	t.Helper()
	path := testenv.Browser(t)
	chromiumMu.Lock()
	defer chromiumMu.Unlock()
	if chromiumCtx != nil {
		return chromiumCtx
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(filepath.Join(work, "profile")))
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, end := chromedp.NewContext(allocator)
	closeChromium = func() { end(); stop() }
	if err := chromedp.Do(ctx); err != nil {
		closeChromium()
		closeChromium = func() {}
		t.Fatalf("start %s: %v", path, err)
	}
	chromiumCtx = ctx
	return ctx
}
