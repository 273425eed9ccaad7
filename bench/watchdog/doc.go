// Command watchdog measures what finding late calls costs: what a call pays for being watched, ten thousand keys that stand still, and a dump, whose stop of the
// world is compared with that of runtime.Stack(all) in the same run.
//
//	go run ./watchdog           the tables as Markdown
//	go run ./watchdog -check    exit status 1 when a target is missed
//	go run ./watchdog -quick    fewer dumps, none among 100,000 goroutines
//
// A stop of the world is what runtime/metrics counts as /sched/pauses/total/other, exact to about 12 %; collections are not in it.
package main
