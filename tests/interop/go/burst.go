package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	rocketmq "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

var numbers = regexp.MustCompile("[0-9]+")

// outcomes counts how sends ended, and keeps why the failed ones failed: errors that differ in numbers only are one.
type outcomes struct {
	mutex  sync.Mutex
	OK     int            `json:"ok"`
	Failed int            `json:"failed"`
	Errors map[string]int `json:"errors"`
}

func (o *outcomes) add(err error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if err == nil {
		o.OK++
		return
	}
	o.Failed++
	if o.Errors == nil {
		o.Errors = map[string]int{}
	}
	o.Errors[numbers.ReplaceAllString(err.Error(), "#")]++
}

// burst sends as fast as one goroutine can: count messages asynchronously without waiting for an answer, then at once as
// many one-way; the client tries none of them again. It tells a line "BURST" with JSON: how many of each ended well, how
// many failed and why, and how long the writing took; "ok" of a one-way message means written. Then it stays until its
// input ends, so that nothing it wrote is lost with its connection. Arguments: name server, topic, count, bytes of a body.
func burst(arguments []string) error {
	if len(arguments) != 4 {
		return fmt.Errorf("burst: name server, topic, count, bytes of a body")
	}
	count, err := strconv.Atoi(arguments[2])
	if err != nil {
		return err
	}
	bodyBytes, err := strconv.Atoi(arguments[3])
	if err != nil {
		return err
	}
	sender, err := rocketmq.NewProducer(
		producer.WithNameServer([]string{arguments[0]}), producer.WithGroupName("burst"), producer.WithRetry(0))
	if err != nil {
		return err
	}
	if err := sender.Start(); err != nil {
		return err
	}
	message := func() *primitive.Message {
		return primitive.NewMessage(arguments[1], []byte(strings.Repeat("b", bodyBytes)))
	}
	if _, err := sender.SendSync(context.Background(), message()); err != nil { // looks up the route, connects
		return err
	}
	say("STARTED")
	var asynchronous, oneWay outcomes
	began := time.Now()
	answers := sendAll(sender, message, count, &asynchronous)
	asynchronousMs := time.Since(began).Milliseconds()
	for number := 0; number < count; number++ {
		oneWay.add(sender.SendOneWay(context.Background(), message()))
	}
	writtenMs := time.Since(began).Milliseconds()
	answers.Wait()
	err = sayJSON("BURST", map[string]any{
		"asynchronous": &asynchronous, "oneway": &oneWay, "asynchronous_written_ms": asynchronousMs,
		"written_ms": writtenMs, "answered_ms": time.Since(began).Milliseconds(),
	})
	if err != nil {
		return err
	}
	say("DONE")
	waitForEnd()
	return sender.Shutdown()
}

// sendAll starts count asynchronous sends; the group it returns is done when each has ended.
func sendAll(
	sender rocketmq.Producer, message func() *primitive.Message, count int, counted *outcomes,
) *sync.WaitGroup {
	var left sync.WaitGroup
	for number := 0; number < count; number++ {
		var once sync.Once
		ended := func(err error) {
			once.Do(func() {
				counted.add(err)
				left.Done()
			})
		}
		left.Add(1)
		err := sender.SendAsync(context.Background(),
			func(_ context.Context, _ *primitive.SendResult, err error) { ended(err) }, message())
		if err != nil {
			ended(err)
		}
	}
	return &left
}
