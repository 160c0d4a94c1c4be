module deepcrawl/bench

go 1.26.0

require (
	deepcrawl v0.0.0
	github.com/PuerkitoBio/goquery v1.13.0
)

require (
	github.com/andybalholm/cascadia v1.3.4 // indirect
	golang.org/x/net v0.62.0 // indirect
)

replace deepcrawl => ../
