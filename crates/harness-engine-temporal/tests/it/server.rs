//! A dev server in memory, one for each test process.

use std::{
    env, io,
    net::TcpListener,
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::Mutex,
    time::Duration,
};

/// Stopped when dropped.
pub(crate) struct DevServer {
    child: Mutex<Child>,
    pub(crate) target: String,
}

impl DevServer {
    pub(crate) async fn start() -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
        let child = Command::new(root.join(".tools/temporal/temporal"))
            .args([
                "server",
                "start-dev",
                "--headless",
                "--ip",
                "127.0.0.1",
                "--log-level",
                "error",
                "--port",
            ])
            .arg(port.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let target = format!("127.0.0.1:{port}");
        while tokio::net::TcpStream::connect(&target).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Self { child: Mutex::new(child), target }
    }
}

impl Drop for DevServer {
    fn drop(&mut self) {
        let mut child = self.child.lock().unwrap();
        let _: io::Result<()> = child.kill();
        let _ = child.wait();
    }
}
