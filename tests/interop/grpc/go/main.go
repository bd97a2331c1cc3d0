// Sends every kind of message with the client of RocketMQ 5 for Go, consumes all, and prints what it saw, a line each.
package main

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	rmq "github.com/apache/rocketmq-clients/golang/v5"
	"github.com/apache/rocketmq-clients/golang/v5/credentials"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func message(topic, body string) *rmq.Message {
	m := &rmq.Message{Topic: topic, Body: []byte(body)}
	m.SetTag("tag")
	m.SetKeys("k1", "k2")
	return m
}

// The messages of the topic fifo once more, for another group, as they come.
func push() {
	var count atomic.Int32
	listener := &rmq.FuncMessageListener{Consume: func(m *rmq.MessageView) rmq.ConsumerResult {
		group := ""
		if m.GetMessageGroup() != nil {
			group = *m.GetMessageGroup()
		}
		fmt.Printf("PUSH\t%s\t%s\t%d\n", m.GetBody(), group, m.GetDeliveryAttempt())
		count.Add(1)
		return rmq.SUCCESS
	}}
	consumer, err := rmq.NewPushConsumer(&rmq.Config{Endpoint: os.Args[1], ConsumerGroup: "go-push", Credentials: &credentials.SessionCredentials{}},
		rmq.WithPushAwaitDuration(5*time.Second), rmq.WithPushSubscriptionExpressions(map[string]*rmq.FilterExpression{"fifo": rmq.SUB_ALL}),
		rmq.WithPushMessageListener(listener))
	check(err)
	check(consumer.Start())
	for end := time.Now().Add(60 * time.Second); count.Load() < 12 && time.Now().Before(end); {
		time.Sleep(100 * time.Millisecond)
	}
	check(consumer.GracefulStop())
}

func main() {
	os.Setenv("mq.consoleAppender.enabled", "true")
	config := &rmq.Config{Endpoint: os.Args[1], Credentials: &credentials.SessionCredentials{}}
	checker := &rmq.TransactionChecker{Check: func(m *rmq.MessageView) rmq.TransactionResolution {
		fmt.Printf("CHECK\t%s\n", m.GetBody())
		return rmq.COMMIT
	}}
	producer, err := rmq.NewProducer(config, rmq.WithTopics("normal", "fifo", "delay", "tx"), rmq.WithTransactionChecker(checker))
	check(err)
	check(producer.Start())
	send := func(m *rmq.Message) {
		_, err := producer.Send(context.TODO(), m)
		check(err)
		fmt.Printf("SENT\t%s\t%s\n", m.Topic, m.Body)
	}
	for n := 0; n < 20; n++ {
		send(message("normal", fmt.Sprint("n", n)))
	}
	for n := 0; n < 12; n++ {
		m := message("fifo", fmt.Sprint("f", n))
		m.SetMessageGroup(fmt.Sprint("g", n%3))
		send(m)
	}
	m := message("delay", "recalled")
	m.SetDelayTimestamp(time.Now().Add(8 * time.Second))
	receipts, err := producer.Send(context.TODO(), m)
	check(err)
	id, err := producer.Recall(context.TODO(), "delay", receipts[0].RecallHandle)
	check(err)
	fmt.Printf("RECALLED\t%t\n", id == receipts[0].MessageID)
	m = message("delay", "d0")
	m.SetDelayTimestamp(time.Now().Add(9 * time.Second))
	send(m)
	for _, end := range []string{"commit", "rollback", "open"} {
		tx := producer.BeginTransaction()
		_, err := producer.SendWithTransaction(context.TODO(), message("tx", end), tx)
		check(err)
		if end == "commit" {
			check(tx.Commit())
		} else if end == "rollback" {
			check(tx.RollBack())
		}
	}
	for topic, count := range map[string]int{"normal": 20, "fifo": 12, "delay": 1, "tx": 2} {
		consumer, err := rmq.NewSimpleConsumer(&rmq.Config{Endpoint: os.Args[1], ConsumerGroup: "go-" + topic, Credentials: &credentials.SessionCredentials{}},
			rmq.WithSimpleAwaitDuration(5*time.Second), rmq.WithSimpleSubscriptionExpressions(map[string]*rmq.FilterExpression{topic: rmq.SUB_ALL}))
		check(err)
		check(consumer.Start())
		for got, end := 0, time.Now().Add(40*time.Second); got < count && time.Now().Before(end); {
			found, err := consumer.Receive(context.TODO(), 16, 20*time.Second)
			if err != nil {
				continue
			}
			for _, m := range found {
				group := ""
				if m.GetMessageGroup() != nil {
					group = *m.GetMessageGroup()
				}
				fmt.Printf("GOT\t%s\t%s\t%s\t%d\n", topic, m.GetBody(), group, m.GetDeliveryAttempt())
				check(consumer.Ack(context.TODO(), m))
				got++
			}
		}
		check(consumer.GracefulStop())
	}
	push()
	check(producer.GracefulStop())
	fmt.Println("DONE")
}
