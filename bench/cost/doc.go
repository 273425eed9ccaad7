// Command cost measures what guarding a call costs, beside other ways to guard one, all in one run and taking turns.
//
//	go run ./cost               the table as Markdown, and its picture in ../docs/img (a minute and a half)
//	go run ./cost -quick        a few seconds, no picture: to see that it works
//	go run ./cost -match hystrix,spillway
//	go run ./cost -check        exit status 1 when a target is missed
//	go run ./cost -http         an HTTP handler, and a server over loopback, with and without httpguard
//	go run ./cost -json         the same as JSON
//
// The figures that count are ratios: see package paired for the method. Run it on a machine that does nothing else.
package main
