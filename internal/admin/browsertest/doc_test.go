// Package browsertest drives the pages of deepcrawl serve in a Chromium, as a person does, with real processes behind them.
//
// Every page a test comes to is audited: it is no wider than a phone of 375 and a screen of 1280 pixels, axe-core finds nothing
// serious in the light and in the dark, and it loads nothing from elsewhere. What the console says (errors, warnings, refusals of
// the content security policy) fails the test, whenever it is said.
//
// Elements are found by role and accessible name, as a screen reader finds them. Tests wait for conditions of the page; nothing
// here depends on how fast the machine is.
package browsertest
