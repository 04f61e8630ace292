use the_loop_core::environment::Environ;

use super::*;

/// A child that holds one variable, ended when it is dropped.
struct Child(std::process::Child);

impl Child {
    fn holding(name: &str, value: &str) -> Self {
        let mut command = Command::new("sleep");
        command.arg("600").env_clear().env(name, value);
        Self(command.spawn().unwrap())
    }

    fn pid(&self) -> i32 {
        self.0.id() as i32
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn se60_the_environment_of_a_process_is_read_and_that_of_none_is_unknown() {
    let own = OsProcesses.environ(std::process::id() as i32).unwrap();
    let path = std::env::var("PATH").unwrap();
    assert_eq!(own.get("PATH"), Some(path.as_bytes()));
    let mut child = Child::holding("TOKEN", "a value with blanks");
    let held = OsProcesses.environ(child.pid()).unwrap();
    assert_eq!(held.get("TOKEN"), Some(b"a value with blanks".as_slice()));
    assert_eq!(held.get("PATH"), None);
    // A process that has ended and was not waited for has a pid and says nothing.
    child.0.kill().unwrap();
    let deadline = Instant::now() + Duration::from_mins(1);
    while OsProcesses.environ(child.pid()).is_some() {
        assert!(Instant::now() < deadline, "it does not end");
        std::thread::yield_now();
    }
    assert_eq!(OsProcesses.environ(i32::MAX), None);
}

#[test]
fn se60_ps_shows_an_environment_in_the_form_that_is_read() {
    let child = Child::holding("TOKEN", "a value with blanks");
    let pid = child.pid().to_string();
    let listed = OsProcesses.run(&Call::new("ps", ["eww", "-p", &pid, "-o", "command="]));
    // A machine may be without it: then an unreadable environment is unknown.
    if matches!(listed.exit, Err(NoAnswer::NotStarted(_))) {
        return;
    }
    let held = Environ::from_ps(&listed.out()).unwrap();
    assert_eq!(held.get("TOKEN"), Some(b"a value with blanks".as_slice()));
}
