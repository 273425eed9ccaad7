// Command memory measures what keys cost in memory: an idle one, one with calls in flight, and a flood of keys that
// nobody declared.
//
//	go run ./memory           the table as Markdown
//	go run ./memory -check    exit status 1 when a target is missed
//	go run ./memory -json     the same as JSON
//
// Bytes are those of live heap objects after a collection. Goroutines, their stacks and whatever else the calls
// themselves need are not in it: they are there before the first figure is taken.
package main
