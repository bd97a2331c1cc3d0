// flows ENDPOINTS: sends every kind of message, consumes all with the simple consumer, and prints what it saw.
use std::time::{Duration, Instant, SystemTime};

use rocketmq::conf::{ClientOption, ProducerOption, SimpleConsumerOption};
use rocketmq::model::common::{FilterExpression, FilterType};
use rocketmq::model::message::MessageBuilder;
use rocketmq::model::transaction::{Transaction, TransactionResolution};
use rocketmq::{Producer, SimpleConsumer};

fn client(endpoints: &str) -> ClientOption {
    let mut option = ClientOption::default();
    option.set_access_url(endpoints);
    option.set_enable_tls(false);
    option
}

async fn produce(endpoints: &str) -> (Producer, Producer) {
    let mut option = ProducerOption::default();
    option.set_topics(vec!["normal", "fifo", "delay"]);
    let mut producer = Producer::new(option, client(endpoints)).unwrap();
    producer.start().await.unwrap();
    for number in 0..20 {
        let body = format!("n{number}").into_bytes();
        let message = MessageBuilder::builder().set_topic("normal").set_tag("tag").set_keys(vec!["k1"]).set_body(body);
        producer.send(message.build().unwrap()).await.unwrap();
    }
    for number in 0..12 {
        let body = format!("f{number}").into_bytes();
        let message = MessageBuilder::fifo_message_builder("fifo", body, format!("g{}", number % 3));
        producer.send(message.build().unwrap()).await.unwrap();
    }
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs() as i64;
    let message = MessageBuilder::delay_message_builder("delay", b"d0".to_vec(), now + 5);
    producer.send(message.build().unwrap()).await.unwrap();

    let mut option = ProducerOption::default();
    option.set_topics(vec!["tx"]);
    let checker = Box::new(|_: String, message: rocketmq::model::message::MessageView| {
        println!("CHECK\t{}", String::from_utf8_lossy(message.body()));
        TransactionResolution::COMMIT
    });
    let mut in_transactions = Producer::new_transaction_producer(option, client(endpoints), checker).unwrap();
    in_transactions.start().await.unwrap();
    for end in ["commit", "rollback", "open"] {
        let message = MessageBuilder::transaction_message_builder("tx", end.as_bytes().to_vec());
        let transaction = in_transactions.send_transaction_message(message.build().unwrap()).await.unwrap();
        match end {
            "commit" => transaction.commit().await.unwrap(),
            "rollback" => transaction.rollback().await.unwrap(),
            _ => {}
        }
    }
    (producer, in_transactions)
}

async fn consume(endpoints: &str, topic: &str, mut count: usize) {
    let mut option = SimpleConsumerOption::default();
    option.set_topics(vec![topic]);
    option.set_consumer_group(format!("rust-{topic}"));
    let mut consumer = SimpleConsumer::new(option, client(endpoints)).unwrap();
    consumer.start().await.unwrap();
    let end = Instant::now() + Duration::from_secs(60);
    while count > 0 && Instant::now() < end {
        let all = FilterExpression::new(FilterType::Tag, "*");
        for message in consumer.receive(topic, &all).await.unwrap_or_default() {
            let body = String::from_utf8_lossy(message.body());
            println!("GOT\t{topic}\t{body}\t{}\t{}", message.message_group().unwrap_or(""), message.delivery_attempt());
            consumer.ack(&message).await.unwrap();
            count -= 1;
        }
    }
    consumer.shutdown().await.unwrap();
}

#[tokio::main]
async fn main() {
    let endpoints = std::env::args().nth(1).unwrap();
    let (producer, in_transactions) = produce(&endpoints).await;
    for (topic, count) in [("normal", 20), ("fifo", 12), ("delay", 1), ("tx", 2)] {
        consume(&endpoints, topic, count).await;
    }
    producer.shutdown().await.unwrap();
    in_transactions.shutdown().await.unwrap();
    println!("DONE");
}
