-- The handlers of each kind of session/update, called with the session and the update.

local function tool(self, u)
  self:tool(u)
end

return {
  user_message_chunk = function(self, u)
    -- The sidecar sends a prompt of this client back when its turn begins. It is shown already; if it was queued, it
    -- moves after the turns that ran before it.
    local meta = u._meta and u._meta.pillion or {}
    for _, e in ipairs((meta.own or meta.steered) and self.entries or {}) do
      if e.kind == "user" and e.text and (e.message == u.messageId or not e.message) and (e.steered or false) == (meta.steered or false) then
        e.message = u.messageId
        if e.waiting then
          e.waiting = nil
          self:remove(e)
          self:add(e)
        end
        return
      end
    end
    self:chunk("user", u)
  end,
  agent_message_chunk = function(self, u)
    self:chunk("agent", u)
  end,
  agent_thought_chunk = function(self, u)
    self:chunk("thought", u)
  end,
  tool_call = tool,
  tool_call_update = tool,
  plan = function(self, u)
    -- The newest plan is updated in its place; after another prompt it is a new entry.
    if self.plan and not self.plan.closed then
      self.plan.plan = u.entries or {}
      return self:tell("changed", self.plan)
    end
    self.plan = self:add({ kind = "plan", plan = u.entries or {} })
  end,
  available_commands_update = function(self, u)
    self.commands = u.availableCommands or {}
  end,
  current_mode_update = function(self, u)
    self:set_current("mode", u.currentModeId)
  end,
  config_option_update = function(self, u)
    self.options = u.configOptions or self.options
    self:status()
  end,
  session_info_update = function(self, u)
    self.title = u.title or self.title
    self:status()
  end,
  usage_update = function(self, u)
    self.usage = u
    self:status()
  end,
  notice = function(self, u)
    self:note(u.severity or "info", u.title .. (u.description and u.description ~= "" and ("\n" .. u.description) or ""))
  end,
  compaction_update = function(self, u)
    if u.status == "completed" then
      self:note("info", "The conversation was summarised to make room.")
    end
  end,
}
