// Command rate prints what a decision of package rate costs beside other limiters, what a key takes in memory, what
// ten million distinct keys do to it, and which faults of limiters were seen here, today.
//
//	go run ./rate          all of it
//	go run ./rate -check   exit status 1 when a target is missed
//
// Each pair takes turns in one run (see internal/paired): believe the ratios, not the nanoseconds.
package main
